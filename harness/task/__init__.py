"""Read, check and recognise a Harbor task and its contract."""
