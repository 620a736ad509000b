"""Networks, and where their weights come from; torch is loaded when one of them is."""
