"""Pretrained encoder-decoders, such as T5, by the library `transformers`.

Ids are the tokenizer's, moved behind our special symbols. Padding, start and end have our ids.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from compgen.data.vocabulary import BOS_ID, EOS_ID, PAD_ID, SPECIALS
from compgen.errors import CheckpointError, UserError, tell
from compgen.files import atomic_path, sha256
from compgen.models.spelling import Spelling, texts
from compgen.models.trainable import Trainable
from compgen.runtime.predict import as_sources, by_length

FILE = "compgen.json"  # beside the files of transformers
FORMAT = "compgen-pretrained"
VERSION = 2
UNSEALED = 1  # the version before there were digests
SCORED = 32  # sequences scored at once, each with the scores of all pieces at all places
Ids = list[list[int]]


class Pretrained(Trainable):
    """An encoder-decoder, its tokenizer, and how examples are written for it.

    Attributes:
        prefix: what stands before each source.
        source_length: most pieces of a source, the end symbol included; what is longer is cut.
        max_length: most pieces of a target, the end symbol included.
        spelling: how tokens are written. It knows no tokens until training gives it those of the data.
    """

    architecture = "pretrained"
    theirs: Tensor  # (5 + V), the tokenizer's number of each of our ids

    def __init__(self, model: Any, tokenizer: Any, prefix: str, source_length: int, max_length: int) -> None:
        super().__init__()
        self.model, self.tokenizer = model, tokenizer
        self.prefix, self.source_length, self.max_length = prefix, source_length, max_length
        self.spelling = Spelling(tokenizer, {})
        self.end: int = tokenizer.eos_token_id
        self.pad: int = self.end if tokenizer.pad_token_id is None else tokenizer.pad_token_id
        self.start: int = model.config.decoder_start_token_id
        special = [self.pad] * len(SPECIALS)
        special[BOS_ID], special[EOS_ID] = self.start, self.end
        self.register_buffer("theirs", torch.tensor([*special, *range(len(tokenizer))]), persistent=False)

    def sources(self, rows: Sequence[Sequence[str]]) -> Ids:
        """Return our ids of sources, with the prefix, without start or end symbol, not cut."""
        return self._ids([self.prefix + self.spelling.write(row) for row in rows])

    def targets(self, rows: Sequence[Sequence[str]]) -> Ids:
        """Return our ids of targets, without start or end symbol, not cut."""
        return self._ids([self.spelling.write(row) for row in rows])

    def _ids(self, written: list[str]) -> Ids:
        if not written:
            return []
        found: Ids = self.tokenizer(written).input_ids
        ended = [ids[:-1] if ids and ids[-1] == self.end else ids for ids in found]
        return [[number + len(SPECIALS) for number in ids] for ids in ended]

    def too_long(self, sources: Ids) -> int:
        """Return the number of sources that have more pieces than are read."""
        return sum(len(ids) >= self.source_length for ids in sources)

    def _scores(self, sequences: Tensor, memory_tokens: Tensor) -> Tensor:
        """Return scores (B, L - 1, V), by the tokenizer's numbers, of every token after the first."""
        source = memory_tokens[:, 0]
        found = self.model(
            input_ids=self.theirs[source],
            attention_mask=(source != PAD_ID).long(),
            decoder_input_ids=self.theirs[sequences[:, :-1]],
            use_cache=False,
        )
        scores: Tensor = found.logits.float()
        return scores

    def loss(self, sequences: Tensor, memory_tokens: Tensor) -> Tensor:
        """Return the cross-entropy (B, L - 1); see `Trainable`."""
        targets = sequences[:, 1:]
        scores = self._scores(sequences, memory_tokens).transpose(1, 2)  # (B, V, L - 1)
        return functional.cross_entropy(scores, self.theirs[targets], reduction="none") * (targets != PAD_ID)

    def predicts(self, sequences: Tensor, memory_tokens: Tensor) -> Tensor:
        """See `Trainable`."""
        targets = sequences[:, 1:]
        best = self._scores(sequences, memory_tokens)[:, :, : len(self.tokenizer)].argmax(dim=2)
        return ((best == self.theirs[targets]) | (targets == PAD_ID)).all(dim=1)

    @torch.inference_mode()
    def best(self, sources: Ids, count: int, beam: int, batch: int) -> list[list[tuple[list[str], float]]]:
        """Return the `count` best targets of each source by log-probability, which is given, the best first.

        They are those of beam search, or for a beam of 1 that of greedy decoding.
        """
        found: dict[int, list[tuple[list[str], float]]] = {}
        for rows in by_length(sources, batch):
            ids = self._batch([sources[row] for row in rows])
            written = self.model.generate(
                input_ids=self.theirs[ids],
                attention_mask=(ids != PAD_ID).long(),
                generation_config=self._generation(beam, count),
            )  # (B count, 1 + L), each from the start symbol on
            said = [self.spelling.read(text) for text in texts(self.tokenizer, written.tolist())]
            ranked = list(zip(said, self._log_probs(written, ids.repeat_interleave(count, dim=0)), strict=True))
            found |= {row: ranked[place * count : (place + 1) * count] for place, row in enumerate(rows)}
        return [found[row] for row in range(len(sources))]

    def _log_probs(self, written: Tensor, sources: Tensor) -> list[float]:
        """Return the log-probability of each sequence (B, 1 + L) that `generate` wrote for its source (B, T)."""
        ends = (written[:, 1:] == self.end).long()
        after = ends.cumsum(dim=1) - ends > 0  # (B, L), what follows the end symbol
        targets = (written[:, 1:] + len(SPECIALS)).masked_fill(after, PAD_ID)
        sequences = torch.cat([written[:, :1] + len(SPECIALS), targets], dim=1)
        parts = [slice(first, first + SCORED) for first in range(0, len(written), SCORED)]
        scores = [-self.loss(sequences[part], sources[part, None]).sum(dim=1) for part in parts]
        found: list[float] = torch.cat(scores).tolist()
        return found

    @torch.inference_mode()
    def nats(self, sources: Ids, targets: Ids) -> Tensor:
        """Return the mean cross-entropy a piece (B) of targets, the end symbol counted as one."""
        sequences = torch.from_numpy(as_sources([[BOS_ID, *target] for target in targets])).to(self.theirs.device)
        found = self.loss(sequences, self._batch(sources)[:, None])
        return found.sum(dim=1) / (sequences[:, 1:] != PAD_ID).sum(dim=1)

    def _batch(self, sources: Ids) -> Tensor:
        """Return sources (B, T) with their end symbol, cut to `source_length`."""
        cut = [ids[: self.source_length - 1] for ids in sources]
        return torch.from_numpy(as_sources(cut)).to(self.theirs.device)

    def _generation(self, beam: int, count: int = 1) -> Any:
        """Return the settings of decoding, which replace those in the model's files.

        A model may have more embeddings than its tokenizer has pieces (T5's are padded to a multiple of 128). These are
        never written; scores count them as improbable, as training does.
        """
        beyond = [*range(len(self.tokenizer), self.model.get_input_embeddings().num_embeddings)]
        by_sum = {"length_penalty": 0.0} if beam > 1 else {}
        return need_transformers().GenerationConfig(
            max_new_tokens=self.max_length,
            num_beams=beam,
            num_return_sequences=count,
            do_sample=False,
            decoder_start_token_id=self.start,
            eos_token_id=self.end,
            pad_token_id=self.pad,
            suppress_tokens=beyond or None,
            **by_sum,
        )

    @classmethod
    def open(cls, name: str, prefix: str, source_length: int, max_length: int) -> "Pretrained":
        """Open a pretrained model from a folder, or by its name on the Hugging Face hub.

        Raises:
            UserError: transformers is not installed, there is no such model, or it is no encoder-decoder.
        """
        with _reading(name):
            model, tokenizer = _parts(name)
        return cls(model, tokenizer, prefix, source_length, max_length)

    def save(self, folder: Path, config: dict[str, Any], trained_on: dict[str, Any]) -> None:
        """Write everything to a folder, which appears whole: weights as safetensors, the rest as JSON."""
        meta = {
            "format": FORMAT,
            "version": VERSION,
            "prefix": self.prefix,
            "source_length": self.source_length,
            "max_length": self.max_length,
            "words": self.spelling.words,
            "config": config,
            "trained_on": trained_on,
        }
        with atomic_path(folder, directory=True) as temporary:
            self.model.generation_config = self._generation(1)
            self.model.save_pretrained(temporary)
            self.tokenizer.save_pretrained(temporary)
            meta["files"] = {path.name: sha256(path) for path in sorted(temporary.iterdir()) if path.is_file()}
            meta["digest"] = _digest(meta)
            (temporary / FILE).write_text(json.dumps(meta, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
            for weights in temporary.glob("*.safetensors"):
                weights.chmod(0o644)  # they are written for their owner alone

    @classmethod
    def load(cls, folder: Path) -> "Pretrained":
        """Read what `save` wrote. A folder without a digest is read with a `Remark`.

        Raises:
            UserError: transformers is not installed.
            CheckpointError: the folder was not written by `save`, is of another version, cut short or damaged.
        """
        try:
            meta = json.loads((folder / FILE).read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise CheckpointError(f"{folder}: not trained by compgen: expected a {FILE} in it") from error
        except PermissionError as error:
            raise CheckpointError(f"{folder / FILE}: cannot be read: {error.strerror}") from error
        except (OSError, ValueError, RecursionError) as error:
            raise CheckpointError(f"{folder}: {FILE} is not JSON, or cut short") from error
        if not isinstance(meta, dict) or meta.get("format") != FORMAT:
            raise CheckpointError(f"{folder}: {FILE} is not of a model that compgen trained")
        version, said = meta.get("version"), meta.pop("digest", None)
        if version not in (UNSEALED, VERSION):
            raise CheckpointError(f"{folder}: format version {version}, this compgen reads {UNSEALED} to {VERSION}")
        if version == UNSEALED and said is None:
            tell(f"{folder}: it has no digest of its content, so damage cannot be detected")
        elif said != _digest(meta):
            raise CheckpointError(f"{folder}: {FILE} is damaged: its content does not agree with its digest")
        with _reading(str(folder)):
            for name, expected in meta.get("files", {}).items():
                if sha256(folder / Path(name).name) != expected:
                    raise CheckpointError(f"{folder}: {name} is damaged: it does not agree with its digest in {FILE}")
            model, tokenizer = _parts(str(folder))
            network = cls(model, tokenizer, meta["prefix"], int(meta["source_length"]), int(meta["max_length"]))
            network.spelling = Spelling(tokenizer, meta["words"])
        return network.eval()


def _digest(meta: dict[str, Any]) -> str:
    """Return the SHA-256 of values as JSON with sorted keys."""
    return hashlib.sha256(json.dumps(meta, sort_keys=True).encode()).hexdigest()


def need_transformers() -> Any:
    """Return the library `transformers`, with less logging; raises UserError if it is not installed."""
    try:
        import transformers
    except ModuleNotFoundError as error:
        raise UserError("a pretrained model needs transformers: pip install 'compgen[train,pretrained]'") from error
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return transformers


def _parts(name: str) -> tuple[Any, Any]:
    """Return an encoder-decoder in float32 and its tokenizer. No code that comes with them is run."""
    transformers = need_transformers()
    config = transformers.AutoConfig.from_pretrained(name, trust_remote_code=False)
    if not config.is_encoder_decoder:
        raise UserError(f"{name}: a model of type {config.model_type}, expected an encoder-decoder such as T5")
    model, read = transformers.AutoModelForSeq2SeqLM.from_pretrained(
        name, dtype=torch.float32, output_loading_info=True, trust_remote_code=False
    )
    wrong = sorted({*read["missing_keys"], *(name for name, *_ in read["mismatched_keys"])})
    if wrong:
        raise UserError(f"{name}: its weights lack {', '.join(wrong[:3])}{', ...' if len(wrong) > 3 else ''}")
    tokenizer = transformers.AutoTokenizer.from_pretrained(name, trust_remote_code=False)
    if len(tokenizer) > model.get_input_embeddings().num_embeddings:
        raise UserError(f"{name}: its tokenizer has more pieces ({len(tokenizer):,}) than the model has embeddings")
    if tokenizer.eos_token_id is None or model.config.decoder_start_token_id is None:
        raise UserError(f"{name}: names no end symbol (eos_token) or no decoder_start_token_id")
    return model, tokenizer


@contextmanager
def _reading(name: str) -> Iterator[None]:
    """Turn any error of reading a model into one line."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # readers of foreign files may stumble over anything
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        if Path(name).is_dir():
            raise CheckpointError(f"{name}: not a model that transformers can read: {reason}") from error
        raise UserError(
            f"{name}: expected a folder that save_pretrained wrote, and there is none; nor can it be had as a name on "
            f"the Hugging Face hub: {reason}"
        ) from error
