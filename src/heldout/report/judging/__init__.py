"""The report on a campaign of judging: the tables and figures of the study, for any campaign."""
