"""Hugging Face `config.json` files: exact counts of decoders and draft heads, and cost models of dense ones.

`specopt.instances.checkpoints.fields` has the types that are understood. `transformers`, where it is installed, counts
the parameters of others. Everything else (encoders, unknown quantisations) is refused by name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from specopt.instances.checkpoints.config import Config
from specopt.instances.checkpoints.dense import DenseShape, Layout, dense_shape
from specopt.instances.checkpoints.draft_heads import CLASSES, head_kind, predicting_layers, read_head
from specopt.instances.checkpoints.fields import DECODER, VISION
from specopt.instances.checkpoints.layers import Layer, read_layers, under
from specopt.instances.checkpoints.meta_device import attention_of_fields, built_weights
from specopt.instances.checkpoints.part import Part
from specopt.instances.checkpoints.quantisation import Storage, read_scheme, read_storage
from specopt.instances.checkpoints.section import Section
from specopt.instances.checkpoints.tensors import Formulas
from specopt.models.arguments import one_of
from specopt.models.decoder import ExactDecoder, PaperDecoder
from specopt.models.errors import InvalidInput, Unsupported
from specopt.models.fields import describe
from specopt.models.files import unique_keys
from specopt.models.reading import StrPath, read_bytes

MAX_BYTES = 4 * 2**20
"""Largest file that is read as a config: weights given by mistake are not loaded first."""

QUANTISED = "quantization_config|compression_config"

DTYPES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2, "float8": 1, "int8": 1}
"""Bytes per value of the data types that counts can be given in."""


@dataclass(frozen=True, kw_only=True)
class ModelConfig(Part):
    """A decoder, or a draft head, as its config describes it.

    Parameters
    ----------
    name
        The model's name, or the file's.
    model_type
        As in the config.
    heads
        Draft heads that come with a decoder; they are not in its counts.
    dense
        The shape that cost models of `serving-latency` can describe; None: they cannot.
    vision_parameters
        Parameters of an image encoder beside the decoder, where known; they are not in its counts.
    dtype
        The data type that the config names, if any; the counts do not depend on it.
    notes
        What a reader should know: defaults taken, parts not counted.
    """

    name: str
    model_type: str
    heads: tuple[Part, ...] = ()
    dense: DenseShape | None = None
    vision_parameters: int | None = None
    dtype: str | None
    notes: tuple[str, ...]

    @property
    def exact(self) -> ExactDecoder:
        """The exact cost model of a dense decoder."""
        return self._shape.exact

    @property
    def paper(self) -> PaperDecoder:
        """The papers' cost model of a dense decoder."""
        return self._shape.paper

    @property
    def layout(self) -> Layout:
        """Biases, norms and positions of a dense decoder: memory that is not in the cost models."""
        return self._shape.layout

    @property
    def projected(self) -> bool:
        """Whether embeddings have another dimension than layers: the cost model `exact` cannot say so."""
        return self.dense is not None and self.layout.embedding != self.exact.hidden

    @property
    def _shape(self) -> DenseShape:
        if self.dense is None:
            raise Unsupported(
                f"{self.name}: no cost model of operations describes it: not a dense decoder; count tokens instead"
            )
        return self.dense


def read_model_config(path: StrPath, *, dtype: str | None = None) -> ModelConfig:
    """Read a `config.json`, or the one in a folder.

    Parameters
    ----------
    path
        The file, in UTF-8 with or without a byte-order mark.
    dtype
        One of `DTYPES`: what weights and cache are counted in; by default two bytes per value, or what the config's
        quantisation says.

    Raises
    ------
    InvalidInput
        If the file cannot be read, is no JSON object, or describes a model whose counts are not known here; the
        message names file and field.
    """
    file = Path(path)
    if file.is_dir():
        file = file / "config.json"
    value = None if dtype is None else DTYPES[one_of("dtype", dtype, DTYPES)]
    raw = read_bytes(file, MAX_BYTES)
    try:
        data = json.loads(raw.decode("utf-8-sig"), object_pairs_hook=unique_keys)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{file}: expected a JSON document in UTF-8: {error}") from None
    try:
        return parse_model_config(data, name=_file_name(file), value_bytes=value)
    except InvalidInput as error:
        raise InvalidInput(f"{file}: {error}") from None


def parse_model_config(data: object, *, name: str = "model", value_bytes: int | None = None) -> ModelConfig:
    """Build the cost models from a config as JSON-like data.

    Parameters
    ----------
    data
        The content of a `config.json`.
    name
        The model's name, where the config gives none.
    value_bytes
        Bytes of a weight or cached value; None: 2, or what the config's quantisation says.

    Raises
    ------
    InvalidInput
        If a field is missing, contradictory, or means a model whose counts are not known here.
    """
    config = Config(data)
    known: dict[str, Any] = {"name": _name(config, name), "model_type": config.model_type, "dtype": _dtype(config)}
    storage = _storage(config, value_bytes)
    if not config.is_known:
        part = _built(config, storage)
        return ModelConfig(**vars(part), **known, notes=tuple(config.notes))
    kind = head_kind(config)
    config.refuse_marks(*(["drafts"] if kind else []))
    config.check_architectures(*(CLASSES if kind else ()))
    config.check_fixed({})
    if config.given("auto_map"):
        config.note(f"auto_map: code of its own is named there; counted as a {config.model_type}")
    if kind is not None:
        part = read_head(config, kind, storage)
        config.note(f"{part.kind}: a draft head; it borrows {', '.join(item.name for item in part.borrowed)}")
        return ModelConfig(**vars(part), **known, notes=tuple(config.notes))
    layers = read_layers(config)
    part = _decoder(config, layers, storage)
    embeddings = [item for item in part.weights if item.name in ("model.embed_tokens", "lm_head")]
    found = ModelConfig(
        **vars(part),
        **known,
        heads=tuple(predicting_layers(config, layers, embeddings, storage)),
        dense=dense_shape(layers, known["name"], storage.value_bytes),
        vision_parameters=_vision_parameters(config),
        notes=(),
    )
    return replace(found, notes=(*config.notes, *_notes(found, config)))


def _decoder(config: Config, layers: Sequence[Layer], storage: Storage) -> Part:
    """Return a decoder whose type the table has."""
    sizes = config.formulas.having({}, layers=len(layers))
    weights = [*sizes.tensors(DECODER), *sizes.tensors(config.type.outside)]
    for index, layer in enumerate(layers):
        weights += under(f"{config.type.names['model']}.layers.{index}", layer.weights)
    attention = tuple(layer.attention for layer in layers)
    return Part(weights=tuple(weights), attention=attention, storage=storage, layers=len(layers))


def _built(config: Config, storage: Storage) -> Part:
    """Return a decoder that the table does not have, as `transformers` builds it."""
    weights = built_weights(config)
    attention, unknown = attention_of_fields(config)
    if storage.method is not None:
        unknown += ["weight_bytes", "reads"]
    if any("expert" in weight.name for weight in weights):
        unknown += ["active_parameters", "routed_expert_parameters", "reads", "flops_per_token"]
    config.note(f"model_type: {config.model_type} is not known here; its parameters are those of transformers")
    if unknown:
        names = ", ".join(dict.fromkeys(unknown))
        config.note(f"{names}: null, for no field says what they are; give by hand what a plan needs")
    layers = config.size("num_hidden_layers", len(attention))
    return Part(weights=weights, attention=attention, storage=storage, layers=layers, unknown=tuple(unknown))


def _vision_parameters(config: Config) -> int | None:
    """Return the parameters of an image encoder and its projector; None where there is none, or its type is unknown."""
    part, table = config.whole.get("vision_config"), VISION.get(str(config.whole.get("model_type")))
    if not isinstance(part, dict) or table is None:
        return None
    width = config.size("hidden_size")
    return int(Formulas(Section(part, "vision_config"), table, decoder_width=width)["parameters"])


def _storage(config: Config, value_bytes: int | None) -> Storage:
    """Return how weights are kept: at a size that was asked for, or as the config says."""
    if value_bytes is not None:
        return Storage(value_bytes=value_bytes, kv_value_bytes=value_bytes)
    given = config.get(QUANTISED) or Section(config.whole).get(QUANTISED)
    where = config.path(QUANTISED) if config.get(QUANTISED) else "quantization_config"
    storage = read_storage(given, where) if given else Storage()
    experts = config.get("expert_dtype") or (config.type.expert_dtype if given else None)
    if experts and one_of(config.path("expert_dtype"), experts, ("fp4", "fp8")) == "fp4":
        schemes = (("*.experts.*", read_scheme(config, "mxfp4")), *storage.schemes)
        return replace(storage, schemes=schemes, method=storage.method or "fp4")
    return storage


def _notes(found: ModelConfig, config: Config) -> Iterator[str]:
    """Yield what the counts leave open."""
    window = config.get("sliding_window")
    if window is not None and found.window is None and config.get("use_sliding_window") is not False:
        yield f"sliding_window: {describe(window)}; not a {found.model_type}'s: every cache grows with the context"
    if found.projected:
        yield (
            f"word_embed_proj_dim: embeddings of {found.layout.embedding}, not {found.exact.hidden}, with two"
            " projections; they are in the parameters, but no cost model can say so"
        )
    if found.dense is None:
        unlike = ["routed experts"] if found.routed_expert_parameters else []
        unlike += dict.fromkeys(item.what for item in found.attention if item.what)
        has = ", ".join(unlike) or "layers that differ from each other"
        yield f"paper: null, for the papers' cost model knows dense decoders alone, and this has {has}"
    if found.window_kv_bytes:
        caches = f"{found.window_kv_bytes:,} bytes more grow" if found.growing_kv_bytes else "every cache grows"
        yield f"sliding_window: {caches} per token up to {found.window:,} tokens only"
    if found.state_bytes_per_sequence:
        what = ", ".join(dict.fromkeys(item.what for item in found.attention if item.state_values))
        size = f"{found.state_bytes_per_sequence:,} bytes of state per sequence beside the cache"
        yield f"{what}: {size}, at {found.storage.kv_value_bytes} per value"
    if found.storage.method is not None:
        cost = "; cost models count plain weights" if found.dense is not None else ""
        yield f"quantization_config: {found.storage.method}, in weight_bytes with its scales{cost}"
    for head in found.heads:
        yield f"{head.kind}: {head.layers} more {'layer' if head.layers == 1 else 'layers'} for drafting, counted apart"


def _name(config: Config, fallback: str) -> str:
    given = config.whole.get("_name_or_path")
    is_repository = isinstance(given, str) and re.fullmatch(r"[A-Za-z0-9_-][\w.-]*/[\w.-]+", given, re.ASCII)
    return str(given) if is_repository else fallback


def _dtype(config: Config) -> str | None:
    """Return the data type that the config names."""
    for section in (config, Section(config.whole)):
        found = section.get("dtype|torch_dtype")
        if found is not None:
            if not isinstance(found, str) or not re.fullmatch(r"[\w.]{1,40}", found, re.ASCII):
                raise InvalidInput(
                    f"{section.where}torch_dtype: expected the name of a data type, got {describe(found)}"
                )
            return found.removeprefix("torch.")
    return None


def _file_name(file: Path) -> str:
    """Return the model's name as the file system tells it: the file's, or its folder's if it is a plain config.json."""
    is_plain = file.name == "config.json"
    name = file.absolute().parent.name if is_plain else file.name.removesuffix(".json").removesuffix(".config")
    return name.encode("utf-8", "replace").decode() or "model"  # names of files need not be UTF-8
