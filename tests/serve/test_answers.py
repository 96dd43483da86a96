"""What the server says, beside what the program says about the same pixels."""

import json
import re
import subprocess
import time

import pytest

from served import CANVAS, PLACES, PROGRAM, Served, canvas_with, png

SECONDS = 120  # that anything may take on a busy machine


def body(image, place):
    return json.dumps({"image": image, "place": place}).encode()


def sample(served, index=0):
    return served.ask(f"/api/sample?index={index}").json


def predicted(run, paths):
    """The classes of each file, by `translution predict`."""
    done = subprocess.run([PROGRAM, "predict", run, *paths, "--json"], check=True, capture_output=True)
    return [result["classes"] for result in json.loads(done.stdout)]


def whole_map(served, run, image):
    cells, end = [], time.time() + SECONDS
    while len(cells) < PLACES * PLACES:
        assert time.time() < end, f"{len(cells)} cells"
        answer = served.ask(f"/api/map?run={run}&known={len(cells)}", body(image, [0, 0]))
        assert answer.status == 200, answer.body
        cells += answer.json["cells"]
    return cells


@pytest.mark.parametrize("run", [0, 1])
def test_every_cell_of_the_map_is_what_predict_says(served, both, tmp_path, run):
    image = sample(served)["image"]
    cells = whole_map(served, run, image)
    assert sorted(place for place, _, _ in cells) == list(range(PLACES * PLACES))
    chosen = cells[::8]
    paths = [tmp_path / f"{place}.png" for place, _, _ in chosen]
    for path, (place, _, _) in zip(paths, chosen):
        path.write_bytes(png(canvas_with(image, place // PLACES, place % PLACES)))
    for classes, (_, best, probability) in zip(predicted(both[run], paths), chosen):
        assert classes[0]["class"] == str(best)
        assert classes[0]["probability"] == pytest.approx(probability, abs=2e-4)


def test_predict_takes_json_and_files_alike(served, both, tmp_path):
    image = sample(served, 3)["image"]
    as_file = png(canvas_with(image, 5, 9))
    (tmp_path / "digit.png").write_bytes(as_file)
    expected = [predicted(run, [tmp_path / "digit.png"])[0] for run in both]
    for data in (as_file, body(image, [5, 9])):
        results = served.ask("/predict", data).json["results"]
        assert [result["run"] for result in results] == ["self_attention", "alpha_translution"]
        for result, classes in zip(results, expected):
            assert len(result["classes"]) == 10
            for ours, theirs in zip(result["classes"], classes):
                assert ours["class"] == theirs["class"]
                assert ours["probability"] == pytest.approx(theirs["probability"], abs=1e-5)


def test_attention_has_a_map_per_layer_and_head_and_alpha_its_parts(served):
    image = sample(served)["image"]
    plain = served.ask("/api/attention?run=0&query=4", body(image, [7, 7])).json
    alpha = served.ask("/api/attention?run=alpha_translution&query=4", body(image, [7, 7])).json
    assert "relative" not in plain
    for maps in (plain["weights"], alpha["weights"], alpha["shared"], alpha["relative"]):
        assert [len(layer) for layer in maps] == [3, 3]
        assert all(len(head) == (CANVAS // 14) ** 2 for layer in maps for head in layer)
    for head in range(3):  # weights are the softmax of the scores, up to the class token's
        scores = [a + b for a, b in zip(alpha["shared"][0][head], alpha["relative"][0][head])]
        weights = alpha["weights"][0][head]
        order = sorted(range(9), key=lambda i: scores[i])
        assert all(weights[a] <= weights[b] + 2e-4 for a, b in zip(order, order[1:]))


def test_offsets_are_those_of_the_matrices(served):
    assert served.ask("/api/offsets?run=0").json == {"tables": []}
    tables = served.ask("/api/offsets?run=1").json["tables"]
    assert len(tables) == 6 and tables[0]["table"] == "layer 1 query_offsets"
    assert len(tables[0]["values"]) == 25 and set(tables[0]["others"]) == {"cls", "cls in", "cls out"}


def test_samples_are_of_the_class_asked_for(served):
    for label in "07":
        answer = served.ask(f"/api/sample?class={label}&index=1000001").json
        assert answer["label"] == label and answer["image"]["rows"] == 28
    assert served.ask("/api/sample?class=x").status == 404


def test_a_checkpoint_that_appears_is_loaded(runs):
    training = runs.start("young", "self_attention", "--steps", "100000", "--save-every", "40", "--log-every", "5")
    try:
        end = time.time() + SECONDS
        while not (runs.folder / "young" / "config.toml").exists():
            assert time.time() < end and training.poll() is None
            time.sleep(0.02)
        page = Served(str(runs.folder / "young"))
        try:
            steps = []
            while len(set(steps)) < 2:
                run = page.ask("/api/runs").json["runs"][0]
                if run["problem"]:
                    assert run["problem"] == "no checkpoint yet"
                else:
                    steps.append(run["step"])
                assert time.time() < end, steps
                time.sleep(0.1)
            log = page.ask("/api/log").json
            assert log["running"] and log["steps"] == 100000 and log["seconds_left"] > 0
        finally:
            page.close()
    finally:
        training.terminate()
        training.communicate()


@pytest.mark.parametrize("arguments, message", [
    (["--port", "99999"], "--port: expected 0 to 65535, got 99999"),
    (["--port", "PORT"], "cannot listen on 127.0.0.1, port PORT: it is in use"),
    (["--host", "203.0.113.7"], "cannot listen on 203.0.113.7"),
    (["no/such/run"], "no/such/run: no such file or directory"),
])
def test_wrong_calls_have_one_line(served, both, arguments, message):
    here = [argument.replace("PORT", str(served.port)) for argument in arguments]
    done = subprocess.run([PROGRAM, "serve", both[0], *here], capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode in (1, 2) and done.stderr.count("\n") == 1
    assert message.replace("PORT", str(served.port)) in done.stderr, done.stderr


def test_text_and_other_sizes_are_refused(runs, both):
    text = runs.folder / "text"
    subprocess.run([PROGRAM, "train", "--data", "text", "--model", "gpt-2x24x2x48-8", "--method", "self_attention",
                    "--steps", "1", "--batch", "2", "--eval-limit", "2", "--out", text], check=True, capture_output=True)
    other = runs.folder / "other"
    subprocess.run([PROGRAM, "train", "--data", "digits:32", "--canvas", "28", "--model", "vit-2x24x2x48/14",
                    "--method", "self_attention", "--steps", "1", "--batch", "2", "--eval-limit", "2", "--out", other],
                   check=True, capture_output=True)
    for run, message in [(text, "which need a vit model"), (other, "serve runs that take the same pictures")]:
        done = subprocess.run([PROGRAM, "serve", both[0], run], capture_output=True, text=True, timeout=SECONDS)
        assert done.returncode == 2 and re.search(message, done.stderr), done.stderr
