"""Commands of `heldout survive`, one module each."""
