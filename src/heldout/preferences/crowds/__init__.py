"""Files and links in the forms of the platforms that workers come from."""
