"""Instances and measurements that are shipped with the package."""
