"""The benchmark harness: engines side by side on one model, each verified before its time counts.

Every engine, ours included, runs in a process of its own behind the same line protocol (:mod:`.peer_server`), so that a
crash, a hang or a wrong result of one is recorded and does not touch the others, and so that peak memory is its own.
"""
