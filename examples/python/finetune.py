"""Fine-tunes a timm ViT whose attention is swapped for alpha-Translution.

    PYTHONPATH=python python3 examples/python/finetune.py [--steps 150]

Needs timm (pip install timm). A small ViT is trained on digits in the middle of the image; it stands for
a model with pretrained=True. Then the digits lie anywhere. One copy of the model is fine-tuned as it is,
one with swapped layers, which begin with the same outputs.
"""

import argparse
import copy
import sys

import torch
from torch import nn

import translution

SIZE, BATCH, DIGITS = 20, 48, 4
# Rows of 3 pixels for 0 to 3, from the top; a bit is a pixel.
ROWS = [(7, 5, 5, 5, 7), (2, 6, 2, 2, 7), (7, 1, 7, 4, 7), (7, 1, 7, 1, 7)]


def glyphs():
    """The digits as images [DIGITS, 10, 6]."""
    bits = torch.tensor([[[row >> 2 & 1, row >> 1 & 1, row & 1] for row in rows] for rows in ROWS])
    return bits.float().repeat_interleave(2, 1).repeat_interleave(2, 2)


def draw(count, moved, generator):
    """Images [count, 1, SIZE, SIZE] and labels; a digit is in the middle, or anywhere."""
    images = 0.1 * torch.randn(count, 1, SIZE, SIZE, generator=generator)
    labels = torch.randint(DIGITS, (count,), generator=generator)
    shapes = glyphs()
    for image, label in zip(images, labels):
        y, x = (SIZE - 10) // 2, (SIZE - 6) // 2
        if moved:
            y = int(torch.randint(SIZE - 9, (), generator=generator))
            x = int(torch.randint(SIZE - 5, (), generator=generator))
        image[0, y:y + 10, x:x + 6] += shapes[label]
    return images, labels


def train(model, steps, moved):
    generator = torch.Generator().manual_seed(1)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    model.train()
    for _ in range(steps):
        images, labels = draw(BATCH, moved, generator)
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def accuracy(model, moved):
    images, labels = draw(500, moved, torch.Generator().manual_seed(2))
    with torch.no_grad():
        return (model.eval()(images).argmax(1) == labels).float().mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=150, help="of fine-tuning")
    steps = parser.parse_args().steps
    try:
        import timm
    except ImportError:
        sys.exit("finetune.py: timm is not installed; pip install timm")

    torch.manual_seed(0)
    model = timm.create_model("vit_tiny_patch16_224", img_size=SIZE, patch_size=4, in_chans=1,
                              num_classes=DIGITS, embed_dim=48, depth=2, num_heads=3)
    train(model, 40, moved=False)
    print(f"digits in the middle: {accuracy(model, False):.2f}, anywhere: {accuracy(model, True):.2f}")

    swapped = copy.deepcopy(model)
    translution.swap(swapped, "alpha_translution")

    images, _ = draw(BATCH, True, torch.Generator().manual_seed(3))
    with torch.no_grad():
        print(f"largest difference of the outputs: {(swapped.eval()(images) - model(images)).abs().max():.1e}")
    for name, tuned in [("as it was", model), ("swapped", swapped)]:
        train(tuned, steps, moved=True)
        print(f"{name:9}  accuracy anywhere after {steps} steps: {accuracy(tuned, True):.2f}")


if __name__ == "__main__":
    main()
