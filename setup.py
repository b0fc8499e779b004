"""Finds the packages in the folders that `pyproject.toml` names; everything else is there."""

import tomllib
from pathlib import Path

from setuptools import find_packages, setup

FOLDERS = tomllib.loads(Path("pyproject.toml").read_text())["tool"]["setuptools"]["package-dir"]

setup(
    packages=[
        *FOLDERS,
        *(f"{name}.{inner}" for name, folder in FOLDERS.items() for inner in find_packages(folder)),
    ]
)
