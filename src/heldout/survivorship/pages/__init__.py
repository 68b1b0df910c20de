"""The annotator's pages, over HTTP."""
