"""Creates the files that a reader of a page has before a command: tiny files of the same kind and name.

Downloads and files of other programs are written here; a run is created by the program itself.
"""

import gzip
import json
import struct
import subprocess
import zlib
from pathlib import Path
from typing import Callable, Dict

SPEECH = "ROMEO:\nBut soft, what light through yonder window breaks?\n\n"


def text(path: Path, program: Path) -> None:
    path.write_text(40 * SPEECH)


def mnist(path: Path, program: Path) -> None:
    """Four IDX files, of 32 images each."""
    path.mkdir(parents=True)
    for part in ("train", "t10k"):
        pixels = bytes((7 * i + j) % 256 for i in range(32) for j in range(28 * 28))
        labels = bytes(i % 10 for i in range(32))
        with gzip.open(path / f"{part}-images-idx3-ubyte.gz", "wb") as file:
            file.write(struct.pack(">IIII", 0x803, 32, 28, 28) + pixels)
        with gzip.open(path / f"{part}-labels-idx1-ubyte.gz", "wb") as file:
            file.write(struct.pack(">II", 0x801, 32) + labels)


def vocabulary(path: Path, program: Path) -> None:
    """GPT-2's files with the 256 bytes and no merges but one."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in plain]
    letters = {**{b: chr(b) for b in plain}, **{b: chr(256 + n) for n, b in enumerate(others)}}
    encoder = {letters[b]: b for b in range(256)}
    encoder.update({"th": 256, "<|endoftext|>": 257})
    path.mkdir(parents=True)
    (path / "encoder.json").write_text(json.dumps(encoder))
    (path / "vocab.bpe").write_text("#version: 0.2\nt h\n")


def run(path: Path, program: Path) -> None:
    """What `train` of the README leaves behind, after one step."""
    subprocess.run([program, "train", "--model", "vit-a/12", "--method", "alpha_translution", "--steps",
                    "1", "--batch", "2", "--eval-limit", "2", "--out", path], check=True,
                   capture_output=True)


def _save(path: Path, tensors: Dict) -> None:
    import translution
    path.parent.mkdir(parents=True, exist_ok=True)
    translution.safetensors.save_file(path, tensors)


def _numbers(shapes: Dict) -> Dict:
    import torch
    torch.manual_seed(0)
    return {name: torch.randn(shape) / 8 for name, shape in shapes.items()}


def _with_norms(shapes: Dict, dim: int, names) -> Dict:
    for name in names:
        shapes[f"{name}.weight"] = shapes[f"{name}.bias"] = (dim,)
    return shapes


def gpt2(path: Path, program: Path) -> None:
    """GPT-2 under the names of Hugging Face: one layer of two heads."""
    dim, hidden = 128, 96
    shapes = {"wte.weight": (30, dim), "wpe.weight": (12, dim)}
    for name, sides in {"attn.c_attn": (dim, 3 * dim), "attn.c_proj": (dim, dim),
                        "mlp.c_fc": (dim, hidden), "mlp.c_proj": (hidden, dim)}.items():
        shapes[f"h.0.{name}.weight"], shapes[f"h.0.{name}.bias"] = sides, sides[1:]
    _save(path, _numbers(_with_norms(shapes, dim, ("h.0.ln_1", "h.0.ln_2", "ln_f"))))


def timm(path: Path, program: Path) -> None:
    """timm's ViT: one layer of two heads on 3x3 patches of 4x4 pixels."""
    dim, hidden = 128, 96
    shapes = {"cls_token": (1, 1, dim), "pos_embed": (1, 10, dim),
              "patch_embed.proj.weight": (dim, 3, 4, 4), "patch_embed.proj.bias": (dim,)}
    for name, sides in {"blocks.0.attn.qkv": (3 * dim, dim), "blocks.0.attn.proj": (dim, dim),
                        "blocks.0.mlp.fc1": (hidden, dim), "blocks.0.mlp.fc2": (dim, hidden),
                        "head": (10, dim)}.items():
        shapes[f"{name}.weight"], shapes[f"{name}.bias"] = sides, sides[:1]
    _save(path, _numbers(_with_norms(shapes, dim, ("blocks.0.norm1", "blocks.0.norm2", "norm"))))


def photos(path: Path, program: Path) -> None:
    """Folders of two classes, each with two grey PNG files of 16x16 pixels for training and for validation."""
    for split in ("train", "val"):
        for level, name in ((64, "dark"), (192, "light")):
            folder = path / split / name
            folder.mkdir(parents=True)
            for i in range(2):
                (folder / f"{i}.png").write_bytes(_png(16, 16, level + i))


def cifar10(path: Path, program: Path) -> None:
    """Strips of ten grey images each, and their labels."""
    path.mkdir(parents=True)
    strips = [f"data_batch_{i}.png" for i in range(1, 6)]
    for name in [*strips, "test_batch.png"]:
        (path / name).write_bytes(_png(10, 32 * 32, 99))
    (path / "train_lables.json").write_text(json.dumps(5 * list(range(10))))
    (path / "test_lables.json").write_text(json.dumps(list(range(10))))


MOLECULES = [("a.xyz", "H 0 0 0\nH 0 0 0.74\n"), ("b.xyz", "O 0 0 0\nH 0 0 0.96\n"),
             ("c.xyz", "C 0 0 0\nO 0 0 1.13\n"), ("d.xyz", "N 0 0 0\nN 0 0 1.1\n"),
             ("e.xyz", "C 0 0 0\nH 0 0 1.09\n"), ("f.xyz", "S 0 0 0\nH 0 0 1.34\n")]


def molecules(path: Path, program: Path) -> None:
    """A list of six molecules of two atoms."""
    path.write_text("".join(f"{name} 2 -{9 + n}\n{atoms}"
                            for n, (name, atoms) in enumerate(MOLECULES)))


def xyz(path: Path, program: Path) -> None:
    """The same as .xyz files."""
    path.mkdir(parents=True)
    for name, atoms in MOLECULES:
        (path / name).write_text(f"2\n\n{atoms}")


def molecule(path: Path, program: Path) -> None:
    """The first of them."""
    path.write_text(f"2\n\n{MOLECULES[0][1]}")


def energies(path: Path, program: Path) -> None:
    """The energies of these files."""
    path.write_text("".join(f"qm7/{name} -{9 + n} 0\n" for n, (name, _) in enumerate(MOLECULES)))


def _png(rows: int, cols: int, level: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    header = struct.pack(">IIBBBBB", cols, rows, 8, 0, 0, 0, 0)  # 8 bits, grey
    pixels = zlib.compress((b"\0" + bytes([level]) * cols) * rows)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def _authors() -> Dict:
    """The tensors of the authors' model lor_qkv_tiny/56 with 8 relative channels."""
    import translution
    return translution.to_authors(translution.ViT(model="lor_qkv_tiny/56", relative_dim=8))


def authors(path: Path, program: Path) -> None:
    _save(path, _authors())


def authors_pickle(path: Path, program: Path) -> None:
    import torch
    torch.save(_authors(), path)


def values(path: Path, program: Path) -> None:
    """A model of ours with relative values alone."""
    import translution
    translution.save_weights(translution.ViT(model="v_tiny/56"), path)


MAKERS: Dict[str, Callable[[Path, Path], None]] = {
    "data/cifar10-files": cifar10,
    "data/gpt2": vocabulary,
    "data/mnist": mnist,
    "data/photos": photos,
    "data/tinyshakespeare/input.txt": text,
    "gpt2/model.safetensors": gpt2,
    "hof_qm7.txt": energies,
    "model.pt": authors_pickle,
    "qm7": xyz,
    "qm7.txt": molecules,
    "runs/alpha": run,
    "theirs.safetensors": authors,
    "values.safetensors": values,
    "vit.safetensors": timm,
    "water.xyz": molecule,
}


def make(name: str, folder: Path, program: Path) -> None:
    """Makes `name` in `folder`, unless it is there; `program` is the one that trains."""
    if name not in MAKERS:
        raise KeyError(f"'{name}' is unknown; readers_files.py makes {', '.join(sorted(MAKERS))}")
    if not (folder / name).exists():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        MAKERS[name](folder / name, program)
