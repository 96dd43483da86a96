"""Replaces the attention of a plain PyTorch ViT by Translution and trains both for a few steps.

    PYTHONPATH=python /usr/bin/python3 examples/python/swap_attention.py [--steps 40]

The images are noise with a bright bar at a random position; the class is its direction.
"""

import argparse

import torch
from torch import nn

import translution

SIZE, PATCH, DIM, HEADS = 12, 3, 32, 2


class PlainAttention(nn.Module):
    """Standard multi-head attention; replaced below."""

    def __init__(self, dim, heads):
        super().__init__()
        self.attention = nn.MultiheadAttention(dim, heads, batch_first=True)

    def forward(self, x):
        return self.attention(x, x, x, need_weights=False)[0]


class SmallViT(nn.Module):
    """A standard ViT: patches, class token, blocks, head."""

    def __init__(self, depth=2):
        super().__init__()
        self.patches = nn.Conv2d(1, DIM, PATCH, PATCH)
        self.cls = nn.Parameter(torch.zeros(1, 1, DIM))
        self.norms = nn.ModuleList(nn.LayerNorm(DIM) for _ in range(2 * depth))
        self.attentions = nn.ModuleList(PlainAttention(DIM, HEADS) for _ in range(depth))
        self.mlps = nn.ModuleList(
            nn.Sequential(nn.Linear(DIM, 2 * DIM), nn.GELU(), nn.Linear(2 * DIM, DIM))
            for _ in range(depth))
        self.head = nn.Linear(DIM, 2)

    def forward(self, images):
        tokens = self.patches(images).flatten(2).transpose(1, 2)  # [B, 16, DIM]
        x = torch.cat([self.cls.expand(len(images), 1, DIM), tokens], 1)
        for layer, (attention, mlp) in enumerate(zip(self.attentions, self.mlps)):
            x = x + attention(self.norms[2 * layer](x))
            x = x + mlp(self.norms[2 * layer + 1](x))
        return self.head(x[:, 0])


def swap_attention(model):
    """Replaces every PlainAttention by a Translution layer on the same tokens, in five lines."""
    side = SIZE // PATCH
    for layer in range(len(model.attentions)):
        model.attentions[layer] = translution.Translution(
            dim=DIM, heads=HEADS, dim_head=DIM // HEADS, grid=(side, side), cls=True)
    return model


def draw(count, generator):
    """Images [count, 1, SIZE, SIZE] and labels: horizontal bar (0) or vertical bar (1)."""
    images = 0.3 * torch.randn(count, 1, SIZE, SIZE, generator=generator)
    labels = torch.randint(2, (count,), generator=generator)
    for image, vertical in zip(images, labels):
        row, col = torch.randint(SIZE - 6, (2,), generator=generator).tolist()
        if vertical:
            image[0, row:row + 6, col] += 1
        else:
            image[0, row, col:col + 6] += 1
    return images, labels


def train(model, steps, seed=0):
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    for _ in range(steps):
        images, labels = draw(64, generator)
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    images, labels = draw(512, generator)
    with torch.no_grad():
        return (model.eval()(images).argmax(1) == labels).float().mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=40)
    steps = parser.parse_args().steps
    for name, change in [("self-attention", lambda model: model), ("Translution", swap_attention)]:
        torch.manual_seed(0)
        accuracy = train(change(SmallViT()), steps)
        print(f"{name:14}  accuracy after {steps} steps: {accuracy:.2f}")


if __name__ == "__main__":
    main()
