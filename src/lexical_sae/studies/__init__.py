"""Studies: experiments from one file each, that leave a folder with results and a report."""
