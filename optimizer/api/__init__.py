"""The front door: functions for Python, on which the commands are built."""
