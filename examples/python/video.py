"""Translution on a 3-dimensional grid: classifies the direction in which a blob moves in a video.

    PYTHONPATH=python /usr/bin/python3 examples/python/video.py [--steps 50]

A video is 4 frames of 4x4 patches: 64 tokens. Each layer has a matrix for each offset in time,
height and width, 7 * 7 * 7 = 343 in all. They are small here (alpha-Translution).
"""

import argparse

import torch
from torch import nn

import translution

FRAMES, SIDE, DIM = 4, 4, 24
MOVES = [(0, 1), (0, -1), (1, 0), (-1, 0)]  # right, left, down, up


class VideoNet(nn.Module):
    def __init__(self, depth=2):
        super().__init__()
        self.embed = nn.Linear(1, DIM)
        self.norms = nn.ModuleList(nn.LayerNorm(DIM) for _ in range(depth))
        self.layers = nn.ModuleList(
            translution.AlphaTranslution(dim=DIM, heads=2, dim_head=12, grid=(FRAMES, SIDE, SIDE))
            for _ in range(depth))
        self.head = nn.Linear(DIM, len(MOVES))

    def forward(self, video):  # [B, FRAMES, SIDE, SIDE]
        x = self.embed(video.flatten(1).unsqueeze(-1))  # [B, N, DIM]
        for norm, layer in zip(self.norms, self.layers):
            x = x + layer(norm(x))
        return self.head(x.mean(1))


def make_videos(count, generator):
    """Videos [count, FRAMES, SIDE, SIDE] of a blob that wraps around, and their classes (MOVES)."""
    videos = 0.1 * torch.randn(count, FRAMES, SIDE, SIDE, generator=generator)
    moves = torch.randint(len(MOVES), (count,), generator=generator)
    for video, move in zip(videos, moves.tolist()):
        row, col = torch.randint(SIDE, (2,), generator=generator).tolist()
        for t in range(FRAMES):
            down, right = MOVES[move]
            video[t, (row + t * down) % SIDE, (col + t * right) % SIDE] += 3
    return videos, moves


def train(steps, seed=0):
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = VideoNet()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    for _ in range(steps):
        videos, moves = make_videos(64, generator)
        loss = nn.functional.cross_entropy(model(videos), moves)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    videos, moves = make_videos(256, generator)
    with torch.no_grad():
        return (model.eval()(videos).argmax(1) == moves).float().mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=50)
    steps = parser.parse_args().steps
    print(f"accuracy after {steps} steps: {train(steps):.2f} (guessing gives 0.25)")


if __name__ == "__main__":
    main()
