"""Every option is an argument with a type and a default, as the library's tables have it."""

import inspect
import json
import subprocess
import sys

import pytest
import torch

import translution


def fields_of(kind):
    return {field["name"]: field for field in json.loads(torch.ops.translution.option_fields(kind))}


def test_file_is_what_the_tables_say(source):
    ran = subprocess.run([sys.executable, source / "scripts" / "python-signatures", "--check"],
                         capture_output=True, text=True,
                         env={"TRANSLUTION_LIBRARY": translution.library_path})
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("made", [translution.Attention, translution.Translution,
                                  translution.AlphaTranslution])
def test_layers_have_every_option_with_its_default(made):
    parameters = inspect.signature(made).parameters
    fields = fields_of("attention")
    assert set(parameters) == set(fields) | {"relation", "device", "dtype"}
    layer = made(8, grid=(2, 2))
    for name in set(fields) - {"dim", "dim_head", "grid", "workspace"}:
        assert parameters[name].default == layer.options[name], name
    assert parameters["dim"].default is inspect.Parameter.empty
    assert parameters["dim_head"].default is None and layer.options["dim_head"] == 8


@pytest.mark.parametrize("made, kind", [(translution.ViT, "vit"), (translution.GPT, "gpt")])
def test_models_have_every_option(made, kind):
    expected = set(fields_of(kind)) | {"model", "device", "dtype"}
    for call in (made, made.named):
        parameters = inspect.signature(call).parameters
        assert set(parameters) == expected
        assert all(p.annotation is not inspect.Parameter.empty for p in parameters.values())


def test_no_call_hides_its_arguments():
    exported = [getattr(translution, name) for name in translution.__all__]
    calls = [call for call in exported if callable(call) and call is not translution.LibraryError]
    for call in calls + [translution.ViT.named, translution.GPT.named]:
        kinds = [parameter.kind for parameter in inspect.signature(call).parameters.values()]
        assert inspect.Parameter.VAR_KEYWORD not in kinds, call


def test_help_lists_every_option_with_its_default():
    text = inspect.getdoc(translution.ViT.__init__)
    for name, field in fields_of("vit").items():
        assert name in text and field["help"].split()[0] in text
    assert "number of classes; 0: a number (cloud) (1000)" in text
