"""Runtimes measured by this project, and the configs of the measured models.

``cpu-pair.csv`` contains the runtimes of a draft/verify pair with random weights and with shapes
chosen by this project (``draft-15m.config.json``, ``verify-100m.config.json``). The pair was
measured on 2026-11-21 on one
thread of an AMD EPYC virtual machine with two cores, with PyTorch 2.13.0+cpu in single precision.
Other work kept the machine busy; the measuring process ran with real-time priority. The command::

  chrt -r 1 specopt measure draft-15m.config.json verify-100m.config.json -o cpu-pair.csv
      --batch 1,2,4 --new-tokens 1,2,4,8,16,32 --cached-tokens 0,128,384
      --repeats 9 --threads 1 --device cpu

``vllm-cpu-ngram.csv`` is a sweep of vLLM 0.32 on two cores of such a machine, measured in 2026-11.
SmolLM2-135M-Instruct runs in single precision with n-gram drafting. The prompts ask for three
copies of a text, and 72 tokens are decoded greedily. Settings: ``enforce_eager=True``,
``OMP_NUM_THREADS=2``, ``VLLM_CPU_KVCACHE_SPACE=2``.
"""
