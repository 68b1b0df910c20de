"""How far judges agree beyond chance, and how alike runs rank."""
