from lexical_sae.cli import main

main()
