"""Runtimes measured by this project, and the configs of the models that were measured.

``cpu-pair.csv`` is a draft/verify pair of this project's own shapes (``draft-15m.config.json``,
``verify-100m.config.json``; random weights) on one thread of an AMD EPYC virtual machine with two
cores, 2026-11-21, PyTorch 2.13.0+cpu, single precision. Other work kept the machine busy; the
measuring process ran with real-time priority. The command::

    chrt -r 1 specopt measure draft-15m.config.json verify-100m.config.json -o cpu-pair.csv
        --batch 1,2,4 --new-tokens 1,2,4,8,16,32 --cached-tokens 0,128,384
        --repeats 9 --threads 1 --device cpu

``vllm-cpu-ngram.csv`` is a sweep of vLLM 0.32 on two cores of such a machine, 2026-11.
SmolLM2-135M-Instruct runs in single precision with n-gram drafting; prompts ask to copy a text
three times, with 72 greedy tokens. Settings: ``enforce_eager=True``, ``OMP_NUM_THREADS=2``,
``VLLM_CPU_KVCACHE_SPACE=2``.
"""
