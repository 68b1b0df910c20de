"""What people judge with, and what an organiser sees of it: pages that are served over HTTP."""
