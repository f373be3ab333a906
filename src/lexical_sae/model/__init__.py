"""Tokens → open words → logits: backbone, dictionary, gate, lexical layer, heads, save and load."""
