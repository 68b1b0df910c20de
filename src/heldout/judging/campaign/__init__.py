"""A campaign: settings, pools, tasks, judgments, payments."""
