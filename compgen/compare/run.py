"""`compare`: the whole of a comparison, from a dataset to the answer, the report, the chosen data and the model."""

import json
import platform
import shlex
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pydantic import BaseModel, ConfigDict

from compgen.augmenters.applicable import applicable
from compgen.augmenters.registry import find, summaries
from compgen.cli.options import option
from compgen.compare import answer, predictors
from compgen.compare.engine import Engine, workers
from compgen.compare.experiment import Experiment, accuracies
from compgen.compare.parts import By, Divided, carve, carvings, divide, inflected
from compgen.compare.report import write_report
from compgen.compare.result import (
    CONTROL,
    Choice,
    Made,
    Method,
    Parts,
    Point,
    PredictorUsed,
    Result,
    Shown,
    Step,
    Trial,
)
from compgen.compare.steps import FULL, VALIDATION, added, made_file, model_file, read_result
from compgen.compare.systems import BARE_SYSTEM, System
from compgen.data.examples import TRAIN, Dataset
from compgen.data.formats import read_dataset, write_dataset
from compgen.errors import UserError
from compgen.files import atomic_path

