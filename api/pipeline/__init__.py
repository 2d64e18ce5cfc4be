"""One question from its words to evidence: question, gate, evidence."""
