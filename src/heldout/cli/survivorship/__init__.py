"""Commands of `heldout survive`."""
