"""The command line, through main() and as a person pipes it."""

import io
import json
from pathlib import Path

import pytest

from cpoker_env.cli import main

VECTORS = Path(__file__).parent / "vectors.json"
GOOD = json.loads(VECTORS.read_text(encoding="utf-8"))[0]
HAND = "As Kd Qc Jh Ts 9s 8c 7s 6h 5s 4s 3c 2s"


def run(capsys, *words):
    status = main(list(words))
    out = capsys.readouterr()
    return status, out.out, out.err


def test_every_vector_passes_through_score(capsys):
    status, out, _ = run(capsys, "score", str(VECTORS), "--json")
    assert status == 0
    scored = {record["id"]: record for record in map(json.loads, out.splitlines())}
    vectors = json.loads(VECTORS.read_text(encoding="utf-8"))
    assert len(scored) == len(vectors)
    for vector in vectors:
        found = scored[vector["id"]]
        found["pairwise"] = [
            {key: pairing[key] for key in ("a", "b", "points_to_a", "kind")}
            for pairing in found["pairwise"]
        ]
        assert vector["expected"] == {key: found[key] for key in vector["expected"]}


def test_readable_account_has_rows_and_reasons(capsys):
    status, out, _ = run(capsys, "score", str(VECTORS))
    assert status == 0
    assert "North scoops East: 2 x 3 rows, + 3 for trips in front" in out
    assert "\x1b" not in out


def changed(**changes):
    return {**GOOD, "id": "bad", **changes}


def seat(**changes):
    return [{**GOOD["players"][0], **changes}, GOOD["players"][1]]


@pytest.mark.parametrize(
    ("item", "says"),
    [
        (changed(ruleset="norse"), "the presets are"),
        (changed(options={"scoop": "big"}), "scoop 'big'"),
        (changed(options=[]) | {"options": [1]}, "options"),
        (changed(players="all"), "players"),
        (changed(players=[1, 2]), "North"),
        (changed(players=GOOD["players"] * 3), "6 seats"),
        (changed(players=seat(front=["Ks", "8h"])), "front of 2 cards"),
        (changed(players=seat(front=["Ks", "8h", "8h"])), "twice"),
        (changed(players=seat(front=["Ks", "8h", "Jc"])), "North and East"),
        (changed(players=seat(front=["Ks", "8h", "1d"])), "card '1d'"),
        (changed(players=seat(front=3)), "cards 3"),
        (changed(players=seat(declare="dragon")), "naturals are off"),
        (changed(ruleset="mandarin", players=seat(declare="dragon")), "does not hold"),
        (changed(players=seat(surrender=True)), "surrender"),
        (changed(players=seat(surrender="yes")), "give true or false"),
        (changed(players=seat(colour="red")), "key 'colour'"),
        (changed(money={"stacks": [1]}), "1 stacks for 2 seats"),
        (changed(money={"stacks": [1, 1], "unit": 0}), "unit 0"),
        (changed(money=7), "money 7"),
        (17, "give an object"),
    ],
)
def test_bad_showdowns_are_reported_and_the_others_scored(capsys, tmp_path, item, says):
    file = tmp_path / "list.json"
    file.write_text(json.dumps([GOOD, item, GOOD]), encoding="utf-8")
    status, out, _ = run(capsys, "score", str(file), "--json")
    records = [json.loads(line) for line in out.splitlines()]
    assert status == 1
    assert [sorted(record) == ["error", "id"] for record in records] == [False, True, False]
    assert says in records[1]["error"]


@pytest.mark.parametrize("text", ["", '[{"id": 1', "nope", "[" * 100_000])
def test_files_that_are_no_json_are_refused(capsys, tmp_path, text):
    file = tmp_path / "bad.json"
    file.write_text(text, encoding="utf-8")
    status, _, err = run(capsys, "score", str(file))
    assert status == 1
    assert err.startswith("error: ")


def test_missing_file_and_unknown_command(capsys):
    status, _, err = run(capsys, "score", "no-such-file.json")
    assert status == 1
    assert "no-such-file.json" in err
    assert main(["shuffle"]) == 2


def test_arrange_answers_good_lines_and_reports_bad_ones(capsys, monkeypatch):
    lines = f"{HAND}\nAs Kd\n\nAs Ad Kc Kd 9s 9d 7c 7d 5h 4h 3c 2d Jh\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    status, out, err = run(capsys, "arrange", "--agent", "greedy")
    assert status == 1
    assert out.splitlines()[0].startswith("declare dragon ")
    assert out.splitlines()[1].count("|") == 2
    assert len(out.splitlines()) == 2
    assert err.startswith("line 2: 2 cards in a hand")


def test_arrange_lists_options_and_json(capsys):
    status, out, _ = run(capsys, "arrange", HAND, "--top", "3", "--json")
    record = json.loads(out)
    assert status == 0
    assert record["action"] == "declare"
    assert record["natural"] == "dragon"
    assert record["options"][0]["action"] == "declare dragon"
    status, _, err = run(capsys, "arrange", HAND, "--agent", "greedy", "--top", "3")
    assert status == 1
    assert "does not value options" in err
