"""Preference judging: from the tops of runs to better labels, pure.

Pools, prices and tasks before people judge; what their judgments say afterwards: contests between
runs, labels, what the labels change, and what has to be judged next. Reading, serving and storing
lie above. Source: shallow-pooling.
"""
