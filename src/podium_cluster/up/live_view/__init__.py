"""The live view of `podium up`: a picture of the cluster that fills the terminal, and keys to look closer.

`live_screen` runs it. Keys (`keys`) change what the user looks at (`browsing`), `frame` draws that at the size of the
terminal, and `terminal` puts it there. Between reading and writing everything is a plain function.
"""
