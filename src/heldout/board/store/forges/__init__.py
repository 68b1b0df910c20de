"""Where submissions arrive: a folder, GitHub, GitLab or Forgejo."""
