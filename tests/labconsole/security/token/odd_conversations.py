"""A child of `module_conversation.Conversation` that behaves as each question says; see `odd_children`."""

from __future__ import annotations

import sys

from odd_children import respond

from labconsole.security.token.module_process import answer_questions

if __name__ == "__main__":
    sys.exit(answer_questions(respond))
