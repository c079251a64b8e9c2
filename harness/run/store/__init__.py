"""A run's candidates: found in a hostile workspace, kept by content, compared with the image, shown in git."""
