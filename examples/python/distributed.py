"""Trains a small GPT with alpha-Translution in several processes, with PyTorch's DistributedDataParallel.

    PYTHONPATH=python python3 examples/python/distributed.py [--processes 2] [--steps 60] [--fsdp]

The script starts the processes itself; under torchrun, which sets RANK, it is one of them. The processes
exchange gradients with Gloo, over the loopback interface unless GLOO_SOCKET_IFNAME names another. Each learns
to continue its own part of the sequences. With --fsdp, fully_shard (PyTorch 2.6 or newer) shards the parameters.
"""

import argparse
import os
import socket
import sys

import torch
import torch.distributed as dist
from torch import nn

import translution

LENGTH, WORDS, BATCH = 16, 12, 16


def sequences(count, generator):
    """Tokens [count, LENGTH + 1] that count up by 1, 2 or 3 from anywhere."""
    start = torch.randint(WORDS, (count, 1), generator=generator)
    stride = torch.randint(1, 4, (count, 1), generator=generator)
    return (start + stride * torch.arange(LENGTH + 1)) % WORDS


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, 48)
        attention = {"dim": 48, "heads": 3, "dim_head": 16, "method": "alpha_translution",
                     "grid": LENGTH, "causal": True}
        self.blocks = nn.Sequential(*(translution.Block(attention, mlp_dim=96) for _ in range(2)))
        self.head = nn.Linear(48, WORDS)

    def forward(self, tokens):  # [B, LENGTH]
        return self.head(self.blocks(self.embed(tokens)))


def sharded(model):
    """The model with parameters, gradients and moments divided among the processes."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def train(rank, size, steps, fsdp):
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", rank=rank, world_size=size)
    torch.manual_seed(0)  # the same weights in each process
    model = sharded(Model()) if fsdp else nn.parallel.DistributedDataParallel(Model())
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    generator = torch.Generator().manual_seed(1 + rank)
    for _ in range(steps):
        tokens = sequences(BATCH // size, generator)
        loss = nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    mean = loss.detach() / size
    dist.all_reduce(mean)
    if rank == 0:
        print(f"{size} processes, loss after {steps} steps: {mean.item():.3f}")
    dist.destroy_process_group()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=2, help="to start; not under torchrun")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--fsdp", action="store_true", help="shard the parameters with fully_shard")
    options = parser.parse_args()
    if not dist.is_available() or not dist.is_gloo_available():
        sys.exit("distributed.py: this PyTorch has no torch.distributed with Gloo")
    if options.fsdp and tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 6):
        sys.exit(f"distributed.py: fully_shard needs PyTorch 2.6 or newer, this is {torch.__version__}")
    if "RANK" in os.environ:
        rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        return train(rank, size, options.steps, options.fsdp)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))
    torch.multiprocessing.spawn(train, (options.processes, options.steps, options.fsdp),
                                nprocs=options.processes)


if __name__ == "__main__":
    main()
