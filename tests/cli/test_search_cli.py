"""``seedbench index`` and ``seedbench serve retrieval``."""

from __future__ import annotations

import json
import socket
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from seedbench.cli.retrieval import index
from seedbench.errors import ConfigError, DataCorrupt, DataMissing
from seedbench.search.remote import Remote, RemoteSettings

LINES = [json.dumps({"id": str(i), "contents": f'"T{i}"\nsome words {i}'}) for i in range(5)]


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.jsonl"
    path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return path


def run(*arguments: object):
    result = CliRunner().invoke(index, [str(a) for a in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_build_info_check(corpus, tmp_path):
    folder = tmp_path / "index"
    assert run("build", corpus, folder).output.startswith("5 passages, ")
    about = json.loads(run("info", folder).output)
    assert about["kind"] == "bm25" and about["documents"] == 5 and about["k1"] == 0.9
    checked = run("check", folder, "--corpus", corpus).output.splitlines()
    assert checked == [
        "ok: 10 files unchanged",
        "ok: 5 passages",
        "ok: same passages in the same order as corpus.jsonl",
    ]


def test_faults_are_errors_with_a_message(corpus, tmp_path):
    with pytest.raises(DataMissing, match="seedbench index build"):
        run("check", tmp_path / "none")
    with pytest.raises(ConfigError, match="Unknown kind 'tree'"):
        run("build", corpus, tmp_path / "index", "--kind", "tree")
    corpus.write_text('{"contents": "x"}\n', encoding="utf-8")
    with pytest.raises(DataCorrupt, match="line 1: a passage without 'id'"):
        run("build", corpus, tmp_path / "index")
    assert run("--help").exit_code == 0


def test_server_process_serves_and_ends(corpus):
    pytest.importorskip("waitress")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = "from seedbench.cli.retrieval import serve; serve()"
    command = [sys.executable, "-c", code, "retrieval", str(corpus), "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert f"127.0.0.1:{port}/retrieve" in process.stdout.readline()
        remote = Remote([f"http://127.0.0.1:{port}"], RemoteSettings(tries=120, pause=0.1, longest_pause=0.5))
        assert [h.id for h in remote.search(["words 3"], 1)[0]] == ["3"]
    finally:
        process.terminate()
        process.wait(60)
    assert process.returncode is not None
