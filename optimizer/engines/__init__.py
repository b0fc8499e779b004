"""What serving engines take: the configuration of each, with the keys and the rules that are its own, a file each."""
