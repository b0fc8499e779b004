"""Measured passes of a draft model and a verify model.

The passes are read from a file of runtimes or from a table written by `specopt measure`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from specopt.instances.checkpoints.model_config import ModelConfig
from specopt.instances.deployment.llama_bench import columns_by_model
from specopt.instances.runtimes.fit import fit_runtime
from specopt.instances.runtimes.measured import FORM as TABLE
from specopt.instances.runtimes.measured import MeasuredRuntime
from specopt.instances.runtimes.table import TableColumns, read_runtime_table
from specopt.instances.runtimes.work import work_of
from specopt.models.arguments import positive
from specopt.models.decoder import ExactDecoder
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe, dump
from specopt.models.files import read_json
from specopt.models.pass_time import PassTime, pass_time
from specopt.models.reading import StrPath, read_bytes

READS, COMPUTES = 0.7, 0.5
"""Fractions of the peak memory bandwidth and of the peak operation rate that passes are assumed to
attain.
"""

BAND = (-0.3, 1.0)
"""Assumed relative error band for passes estimated from peak performance.

The lower end of the band corresponds to a pass that attains the full bandwidth.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Passes:
    """The measured passes of the draft model and the verify model.

    Parameters
    ----------
    path
        Path of the file from which the passes were read.
    models
        Configs of the models "draft" and "verify". In a table, the column `model` contains the
        names in these configs.
    data
        JSON data of the file; None if the file is a table.
    """

    path: str
    models: Mapping[str, ModelConfig]
    data: Mapping[str, Any] | None = None

    @classmethod
    def read(cls, path: StrPath, models: Mapping[str, ModelConfig]) -> Self:
        """Read runtimes from a JSON file, or a table of passes from a CSV file.

        Raises
        ------
        InvalidInput
            If the file cannot be read, or if it contains other models.
        """
        if not read_bytes(path).lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[")):
            return cls(path=str(path), models=models)
        data = read_json(path)
        if not isinstance(data, Mapping):
            raise InvalidInput(
                f"{path}: expected an object with {' and '.join(models)}, got {describe(data)}"
            )
        for name, config in models.items():
            found = data.get(f"{name}_model", _mapping(data.get(name)).get("model"))
            decoder = _decoder(config)
            if (
                decoder is not None
                and isinstance(found, Mapping)
                and {**found, "name": None} != {**dump(decoder), "name": None}
            ):
                raise InvalidInput(
                    f"{path}.{name}: expected passes of {config.name}, got passes of another model"
                )
        return cls(path=str(path), models=models, data=data)

    @classmethod
    def from_peak(cls, text: str, models: Mapping[str, ModelConfig]) -> Self:
        """Estimate the duration of every pass from the peak performance of a machine.

        The estimates have a wide error band.

        Parameters
        ----------
        text
            Peak performance in the form ``TFLOPS,GB/s``, which specifies the operation rate and the
            memory bandwidth.
        models
            Configs of the models, as in `Passes`.

        Raises
        ------
        InvalidInput
            If the text does not consist of two numbers > 0.
        """
        try:
            tflops, gigabytes = (positive("--peak", float(part)) for part in text.split(","))
        except ValueError:
            raise InvalidInput(
                f"--peak: expected TFLOPS,GB/s, two numbers > 0, got {text!r}"
            ) from None
        flop = 1.0 / (COMPUTES * tflops * 1e12)
        byte = 1.0 / (READS * gigabytes * 1e9)
        data: dict[str, Any] = {}
        for name, config in models.items():
            counted = _decoder(config) is not None
            per = "seconds_per_flop" if counted else "seconds_per_token"
            slope = flop if counted else flop * config.flops_per_token
            reading = config.weight_bytes * byte
            data[name] = {
                "runtime": {
                    "pieces": [
                        {per: 0.0, "overhead_seconds": reading},
                        {per: slope, "overhead_seconds": 0.0},
                    ],
                    "seconds_per_cached_token": config.kv_bytes_per_token * byte,
                },
                "misfit": {"low": BAND[0], "high": BAND[1]},
            }
        return cls(path=f"--peak {text}", models=models, data=data)

    def runtimes(self, form: str) -> Mapping[str, Any]:
        """Return the runtimes of both models in the format that `fit` writes.

        If the passes come from a table, a runtime of the form `form` is fitted to them.

        Parameters
        ----------
        form
            Name of a form in `FORMS`, or "table" to keep the measured passes.

        Raises
        ------
        InvalidInput
            If the table lacks a model or a column, or if the form cannot be fitted.
        """
        if self.data is not None:
            missing = {
                f"{name}_model": dump(decoder)
                for name, config in self.models.items()
                if (decoder := _decoder(config)) is not None
                and "model" not in _mapping(self.data.get(name))
            }
            return {**missing, **self.data}
        return {name: self._fitted(name, form) for name in self.models}

    @cached_property
    def times(self) -> dict[str, PassTime]:
        """Mapping from each model to an object that computes the model's pass times.

        If the passes come from a table, the object interpolates in the table.

        Raises
        ------
        InvalidInput
            If a runtime is missing or outside its domain.
        """
        data = self.runtimes(TABLE)
        return {
            name: pass_time(
                data.get(name),
                f"{self.path}.{name}",
                decoder=_decoder(config),
                all_logits=name == "verify",
            )
            for name, config in self.models.items()
        }

    def _fitted(self, name: str, form: str) -> dict[str, Any]:
        config = self.models[name]
        if (known := columns_by_model(self.path, self.models)) is None:
            columns = TableColumns(  # as `specopt measure` writes them
                x=("new_tokens",),
                y=("seconds_median",),
                batch="batch",
                cached="cached_tokens",
                where={"model": config.name},
            )
        else:
            columns = known[name]
        table = read_runtime_table(self.path, columns)
        if form == TABLE:
            return MeasuredRuntime.from_table(table).to_dict()
        decoder = _decoder(config)
        work = work_of(table, decoder=decoder, all_logits=name == "verify")
        return fit_runtime(table, work, form, decoder=decoder).to_dict()


def _decoder(config: ModelConfig) -> ExactDecoder | None:
    """Return a decoder that counts a model's operations, or None if no decoder can represent the
    model.
    """
    return None if config.projected else config.dense


def _mapping(value: object) -> Mapping[str, Any]:
    """Return `value` if it is a mapping, and an empty mapping otherwise.

    Missing fields are reported later.
    """
    return value if isinstance(value, Mapping) else {}
