"""How the byte-class estimator is made and judged: public texts, the fit, the table of errors."""
