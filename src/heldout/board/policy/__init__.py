"""The policy: what is looked at before a person decides on a submission.

`table` lists the rules; `case` is what a rule sees; the other modules are what rules are made of.
"""
