"""An optimizer in a process of its own, which holds no problem: it sees what it is told, no more.

Both sides speak in lines of JSON over pipes; numbers are doubles in Base64.
"""
