"""The organisers' side of a submission: received, reviewed, decided, answered, made public."""
