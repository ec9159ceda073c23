"""A server of a small index, and clients whose connections are closed after the test."""

from collections.abc import Iterator

import pytest
from search.server_client import TEXTS, TITLES, Client, Connect

from palaestra.adapters.retrieval_server import Server
from palaestra.games.search import Index


@pytest.fixture(scope="module")
def index() -> Index:
    return Index(TEXTS, titles=TITLES)


@pytest.fixture(scope="module")
def corpus(index: Index) -> Iterator[Server]:
    with Server(index=index, port=0) as server:
        yield server


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Clients whose connections are closed after the test."""
    clients: list[Client] = []

    def connect(server: Server) -> Client:
        clients.append(Client(server))
        return clients[-1]

    yield connect
    for client in clients:
        client.connection.close()


@pytest.fixture
def client(corpus: Server, connect: Connect) -> Client:
    return connect(corpus)
