"""Trees of certificates, as JSON."""


def json_leaves(part):
    """All leaves of a part that are not given up."""
    waiting = [part["tree"]]
    while waiting:
        tree = waiting.pop()
        if tree is not None and "token" in tree:
            waiting += [tree["fewer"], tree["more"]]
        elif tree is not None:
            yield tree


def json_chain(order, leaves):
    """A leaf for the first of these tokens that occurs, and one for none."""
    *before, tree = leaves
    for token, leaf in zip(reversed(order), reversed(before), strict=True):
        tree = {"token": token, "at_least": 1, "more": leaf, "fewer": tree}
    return tree


def json_part(label, queries, tree):
    return {"label": label, "queries": queries, "tree": tree}


def leaf_of(part, sequence):
    """The leaf that a sequence is in."""
    tree = part["tree"]
    while tree is not None and "token" in tree:
        tree = tree["more" if list(sequence).count(tree["token"]) >= tree["at_least"] else "fewer"]
    return tree
