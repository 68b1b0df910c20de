"""From a file or pipe to lines of text: archives, limits, digests, a thread that reads ahead."""
