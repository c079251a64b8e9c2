from search import Walk


def load():
    return Walk()
