"""Shell completion."""

from __future__ import annotations

import os
import subprocess

import pytest


@pytest.fixture
def complete(holdfast):
    """Return the words that are offered for the last word."""

    def offers(*typed):
        return [line.partition("\t")[0] for line in holdfast("_complete", *typed, project=None).out.splitlines()]

    return offers


def test_completion_offers_commands_options_choices_and_keys(complete, holdfast, home):
    holdfast("store", "text", "--key", "testing")
    holdfast("store", "text", "--key", "gone")
    holdfast("forget", "gone")
    here = ("--home", str(home), "--project", "demo")
    assert complete("st") == ["store", "status"]
    assert complete("file", "str") == ["str-replace"]
    assert complete("recall", "x", "--mo") == ["--mode"]
    assert complete("recall", "--mode", "k") == ["keyword"]
    assert complete("recall", "--mode=", "k") == []
    assert complete("recall", "--mode", "=", "k") == ["keyword"]
    assert complete(*here, "get", "te") == ["testing"]
    assert complete("restore", *here, "") == ["gone"]
    assert complete("config", "brief.e") == ["brief.entries"]
    assert complete("path", *here, "te") == ["testing"]
    assert complete("completion", "z") == ["zsh"]
    assert complete("help", "fac") == ["fact", "facts"]
    assert complete("nonsense", "") == complete("get", "a", "") == []
    assert "store" in complete()


def test_completion_scripts_work_in_a_real_bash(program, tmp_path, holdfast):
    holdfast("store", "text", "--key", "testing")
    shim = tmp_path / "bin" / "holdfast"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec {" ".join(program.command())} "$@"\n')
    shim.chmod(0o755)
    script = tmp_path / "completion.bash"
    script.write_text(holdfast("completion", "bash").out)
    subprocess.run(["bash", "-n", str(script)], check=True)
    asked = """
        source "$1"
        COMP_WORDS=(holdfast get te); COMP_CWORD=2; _holdfast; echo "${COMPREPLY[@]}"
        COMP_WORDS=(holdfast recall --mode = se); COMP_CWORD=4; _holdfast; echo "${COMPREPLY[@]}"
        COMP_WORDS=(holdfast list ''); COMP_CWORD=2; _holdfast; echo "${#COMPREPLY[@]}"
        complete -p holdfast
    """
    env = {**os.environ, "PATH": f"{shim.parent}:{os.environ['PATH']}"}
    shell = ["bash", "-c", asked, "bash", str(script)]
    done = subprocess.run(shell, capture_output=True, text=True, env=env, timeout=60)
    assert done.stdout.splitlines() == ["testing", "semantic", "0", "complete -o default -F _holdfast holdfast"]


def test_every_completion_script_calls_the_program(holdfast):
    for shell in ("bash", "zsh", "fish"):
        said = holdfast("completion", shell)
        assert "_complete" in said.out
        assert holdfast("completion", shell, "--json").json["script"] == said.out
