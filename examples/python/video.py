"""Translution on a 3-dimensional grid: which digit moves in a video, and where to?

    PYTHONPATH=python /usr/bin/python3 examples/python/video.py [--mnist DIR] [--steps N] [--out offsets.svg]

A video has 4 frames of 32x32 pixels; patches of 8x8 pixels make 4x4x4 = 64 tokens. Each layer has a small matrix for
each offset in time, height and width, 7 * 7 * 7 = 343 in all. The picture shows how large those of the first
layer are. Without --mnist (a directory made by scripts/fetch-mnist), digits are those of a pocket calculator.
"""

import argparse
import gzip
from pathlib import Path

import torch
from torch import nn

import translution

FRAMES, SIDE, PATCH, DIM = 4, 32, 8, 48
GRID = (FRAMES, SIDE // PATCH, SIDE // PATCH)
MOVES = [(0, 4), (0, -4), (4, 0), (-4, 0)]  # pixels per frame: right, left, down, up
SEGMENTS = ["abcdef", "bc", "abdeg", "abcdg", "bcfg", "acdfg", "acdefg", "abc", "abcdefg", "abcdfg"]
STROKES = {"a": (0, 1, 0, 8), "b": (0, 8, 7, 8), "c": (7, 15, 7, 8), "d": (14, 15, 0, 8),  # rows, columns
           "e": (7, 15, 0, 1), "f": (0, 8, 0, 1), "g": (7, 8, 0, 8)}


def calculator_digits():
    """Images [10, 15, 8] from 0 to 1, and their classes."""
    images = torch.zeros(10, 15, 8)
    for digit, segments in enumerate(SEGMENTS):
        for top, bottom, left, right in map(STROKES.get, segments):
            images[digit, top:bottom, left:right] = 1
    return images, torch.arange(10)


def mnist(directory, part):
    """Images [n, 14, 14] from 0 to 1, half the size of MNIST's, and their classes."""
    def read(kind, header):
        path = next(Path(directory).glob(f"{part}-{kind}*"), None)
        if path is None:
            raise SystemExit(f"video.py: {directory} has no {part}-{kind}…; scripts/fetch-mnist fetches MNIST")
        data = gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes()
        return torch.frombuffer(bytearray(data[header:]), dtype=torch.uint8)

    images = read("images", 16).view(-1, 1, 28, 28).float() / 255
    return nn.functional.avg_pool2d(images, 2).squeeze(1), read("labels", 8).long()


def make_videos(digits, labels, count, generator):
    """Videos [count, FRAMES, SIDE, SIDE] of digits that start anywhere and wrap around, their digits and moves."""
    chosen = torch.randint(len(digits), (count,), generator=generator)
    moves = torch.randint(len(MOVES), (count,), generator=generator)
    rows, cols = digits.shape[1:]
    still = nn.functional.pad(digits[chosen], (0, SIDE - cols, 0, SIDE - rows))
    videos = 0.1 * torch.randn(count, FRAMES, SIDE, SIDE, generator=generator)
    starts = torch.randint(SIDE, (count, 2), generator=generator).tolist()
    for video, image, (row, col), move in zip(videos, still, starts, moves.tolist()):
        down, right = MOVES[move]
        for t in range(FRAMES):
            video[t] += image.roll((row + t * down, col + t * right), (0, 1))
    return videos, labels[chosen], moves


class VideoNet(nn.Module):
    def __init__(self, method, depth=2):
        super().__init__()
        self.embed = nn.Linear(PATCH * PATCH, DIM)
        self.norms = nn.ModuleList(nn.LayerNorm(DIM) for _ in range(2 * depth))
        self.layers = nn.ModuleList(translution.Attention(dim=DIM, heads=3, grid=GRID, method=method)
                                    for _ in range(depth))
        self.mlps = nn.ModuleList(nn.Sequential(nn.Linear(DIM, 2 * DIM), nn.GELU(), nn.Linear(2 * DIM, DIM))
                                  for _ in range(depth))
        self.digit, self.move = nn.Linear(DIM, 10), nn.Linear(DIM, len(MOVES))

    def forward(self, video):  # [B, FRAMES, SIDE, SIDE]
        frames, rows, cols = GRID
        patches = video.view(-1, frames, rows, PATCH, cols, PATCH).permute(0, 1, 2, 4, 3, 5)
        x = self.embed(patches.reshape(-1, frames * rows * cols, PATCH * PATCH))  # [B, N, DIM]
        for i, (layer, mlp) in enumerate(zip(self.layers, self.mlps)):
            x = x + layer(self.norms[2 * i](x))
            x = x + mlp(self.norms[2 * i + 1](x))
        pooled = x.mean(1)
        return self.digit(pooled), self.move(pooled)


def train(model, digits, labels, steps, generator):
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=steps)
    for step in range(steps):
        videos, digit, move = make_videos(digits, labels, 64, generator)
        guessed, direction = model(videos)
        loss = nn.functional.cross_entropy(guessed, digit) + nn.functional.cross_entropy(direction, move)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if (step + 1) % 100 == 0:
            print(f"step {step + 1}: loss {loss.item():.3f}", flush=True)


def share_right(guess, truth):
    return (guess.argmax(1) == truth).float().mean().item()


def draw_offsets(layer, path, cell=9):
    """The norm of each relative matrix: a row of pictures per role, a picture per offset in time."""
    sides = [2 * side - 1 for side in GRID]
    roles, tables = ("query", "key", "value"), dict(layer.named_parameters())
    marks = []
    for row, role in enumerate(roles):
        table = tables.get(f"{role}_offsets", tables[role])
        norms = table.detach().flatten(1).norm(dim=1).view(*sides)
        shades = ((norms - norms.min()) / (norms.max() - norms.min())).tolist()
        top = 40 + row * (sides[1] * cell + 24)
        marks.append(f'<text x="8" y="{top + sides[1] * cell / 2}">{role}</text>')
        for t, picture in enumerate(shades):
            left = 60 + t * (sides[2] * cell + 14)
            if row == 0:
                marks.append(f'<text x="{left}" y="24">time {t - FRAMES + 1:+d}</text>'.replace("+0", "0"))
            marks += [f'<rect x="{left + x * cell}" y="{top + y * cell}" width="{cell}" height="{cell}" '
                      f'fill="hsl({250 - 200 * shade:.0f} 70% {25 + 45 * shade:.0f}%)"/>'
                      for y, line in enumerate(picture) for x, shade in enumerate(line)]
    width, height = 60 + sides[0] * (sides[2] * cell + 14), 40 + len(roles) * (sides[1] * cell + 24)
    Path(path).write_text(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
                          f'font-family="sans-serif" font-size="12"><rect width="{width}" height="{height}" '
                          f'fill="white"/>{"".join(marks)}</svg>\n')
    print(f"offsets of the first layer: {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mnist", metavar="DIR", help="MNIST's files, as scripts/fetch-mnist writes them")
    parser.add_argument("--method", default="alpha_translution", choices=["alpha_translution", "translution"],
                        help="attention method (%(default)s)")
    parser.add_argument("--steps", type=int, default=200, help="training steps of 64 videos (%(default)s)")
    parser.add_argument("--out", metavar="FILE", help="picture of the offsets (SVG)")
    flags = parser.parse_args()
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    digits, labels = mnist(flags.mnist, "train") if flags.mnist else calculator_digits()
    model = VideoNet(flags.method)
    train(model, digits, labels, flags.steps, generator)
    digits, labels = mnist(flags.mnist, "t10k") if flags.mnist else calculator_digits()
    videos, digit, move = make_videos(digits, labels, 1000, generator)
    with torch.no_grad():
        guessed, direction = model.eval()(videos)
    print(f"right after {flags.steps} steps: {share_right(guessed, digit):.2f} of the digits (guessing: 0.10), "
          f"{share_right(direction, move):.2f} of the moves (guessing: 0.25)")
    if flags.out:
        draw_offsets(model.layers[0], flags.out)


if __name__ == "__main__":
    main()
