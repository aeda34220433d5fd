"""The resume contract, and the harness that measures a framework by it.

A *driver* speaks for one framework, in that framework's own environment; a *probe* puts
one property to the test through a driver, and never knows which framework it is. The
contract is in docs/contract.md; run it with `remit-gates contract`.
"""
