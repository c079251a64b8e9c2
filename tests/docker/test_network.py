"""What a container reaches, by the mode of its network."""

import json
import os
import signal
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from harness.sandbox import boxfolder
from harness.sandbox.base import NO_NETWORK, Network, Reach
from harness.sandbox.docker.engine import DockerSandbox
from harness.sandbox.docker.network import BoxNetwork

# Says for each place whether a plain TCP connection is made; the metadata address stands for what clouds hand out.
TRY = """python3 - <<'END'
import socket
for place in {places!r}:
    try:
        socket.create_connection(tuple(place), timeout=3).close()
        print(place[0], "reached")
    except OSError as error:
        print(place[0], "not reached")
END
"""
FETCH = """python3 - <<'END'
import urllib.request, urllib.error
try:
    print(urllib.request.urlopen({url!r}, timeout=20).read().decode())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
except OSError as error:
    print("failed", error)
END
"""
METADATA = ["169.254.169.254", 80]


@pytest.fixture
def site():
    """Serve one page on an address of this host that boxes could route to."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"a page of the host")

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


def test_without_a_network_nothing_is_reached(make, do):
    box = make()
    _, text = do(box, "cat /proc/net/dev; " + TRY.format(places=[METADATA, ["8.8.8.8", 53]]))
    assert "reached" not in text.replace("not reached", "")
    assert "eth0" not in text
    assert box.spec.network == NO_NETWORK


def test_an_allow_list_lets_through_what_it_says_and_writes_it_down(make, do, site):
    box = make(network=Network(Reach.LISTED, ("127.0.0.1/32",)))
    done, text = do(box, FETCH.format(url=f"http://127.0.0.1.nip.invalid:{site}/"))
    assert done.code == 0
    assert "403" in text
    # 127.0.0.1 itself is the box's own, and no client asks a proxy for it unless told to.
    proxied = f"import urllib.request as u; print(u.build_opener(u.ProxyHandler(dict(http=__import__('os').environ['HTTP_PROXY']))).open('http://127.0.0.1:{site}/').read())"
    _, text = do(box, f'NO_PROXY= no_proxy= python3 -c "{proxied}"')
    assert "a page of the host" in text
    lines = [json.loads(line) for line in (box.folder.path / "network.jsonl").read_text().splitlines()]
    assert [line["verdict"] for line in lines] == ["refused", "allowed"]


def test_an_allow_list_leaves_no_other_way_out(make, do):
    box = make(network=Network(Reach.LISTED, ("pypi.org",)))
    _, text = do(box, TRY.format(places=[METADATA, ["8.8.8.8", 53], ["1.1.1.1", 443]]))
    assert text.count("not reached") == 3
    _, text = do(box, "python3 -c 'import socket; print(socket.gethostbyname(\"pypi.org\"))'")
    assert "Error" in text or "error" in text


def test_neighbours_do_not_see_one_another(make, do):
    network = Network(Reach.LISTED, ("pypi.org",))
    one, other = make("one", network=network), make("other", run="other", network=network)
    serve = "python3 -m http.server 8000 >/dev/null 2>&1 & sleep 1; hostname -i 2>/dev/null || tail -1 /etc/hosts"
    _, text = do(one, serve)
    address = text.split()[0]
    _, own = do(one, TRY.format(places=[["127.0.0.1", 8000]]))
    assert "127.0.0.1 reached" in own
    _, text = do(other, TRY.format(places=[[address, 8000]]))
    assert "not reached" in text


def test_a_proxy_that_died_is_started_again_when_the_box_is_found(make):
    box = make(network=Network(Reach.LISTED, ("pypi.org",)))
    pid = box.folder.running("proxy", box.lease)
    os.kill(pid, signal.SIGKILL)
    again = DockerSandbox().attach("run", "work")
    assert again.folder.running("proxy", box.lease) not in {None, pid}


def test_sweeping_leaves_neither_network_nor_proxy(make):
    box = make(network=Network(Reach.LISTED, ("pypi.org",)))
    make("open", network=Network(Reach.PUBLIC))
    pid = box.folder.running("proxy", box.lease)
    name = BoxNetwork(box.spec, box.folder).name
    assert len(DockerSandbox().sweep("run")) == 2
    listed = subprocess.run(["docker", "network", "ls", "-q", "-f", f"name={name}"], capture_output=True, check=True)
    assert listed.stdout == b""
    deadline = time.monotonic() + 60
    while boxfolder.start_time(pid) is not None:
        assert time.monotonic() < deadline
        time.sleep(0.02)
