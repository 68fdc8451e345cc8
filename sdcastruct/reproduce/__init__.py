"""The experiments of the paper, each reproduced by one command: ``sdcastruct reproduce NAME``.

`experiments` has one entry per figure or table of the paper, `solvers` what is trained for them,
`claims` turns the numbers into verdicts. `tasks` loads the four data sets, `runs` trains and
measures, `store` keeps what was measured, `figures` draws it and `command` is the command line.
"""
