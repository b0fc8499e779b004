"""Tiny traces of our own making, one of each format, as the bytes of their files."""

from __future__ import annotations

AZURE_2023 = (
    b"TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
    b"2031-02-03 23:59:58.1234567,374,44\r\n"
    b"2031-02-03 23:59:59.1234568,12,9\r\n"
    b"2031-02-04 00:00:00.1234567,8000,1"
)
"""CRLF, seven digits, no newline at the end."""

AZURE_2024 = (
    b"TIMESTAMP,ContextTokens,GeneratedTokens\n"
    b"2032-01-01 00:00:00.250000+00:00,100,10\n"
    b"2032-01-01 00:00:01+00:00,200,20\n"
    b"2032-01-01 00:00:01.500000+00:00,300,30\n"
)

BURSTGPT = (
    b"Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    b"5,ChatGPT,472,18,490,Conversation log\n"
    b"45,GPT-4,612,0,612,Conversation log\n"
    b"46,GPT-4,0,0,0,API log\n"
    b"118,GPT-4,417,276,693,API log\n"
)
"""Six columns; two requests failed."""

BURSTGPT_NEW = (
    b"Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log"
    b' Type\n0.5,"17",2.25,ChatGPT,10,20,30,Conversation log\n1,"18",0,GPT-4,11,0,11,"Conversation,'
    b' log"\n2.5,,1.5,GPT-4,12,22,34,API log\n'
)

MOONCAKE = (
    b'{"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1, 2]}\n'
    b'{"timestamp": 27, "input_length": 10, "output_length": 1, "hash_ids": []}\n'
    b'{"timestamp": 3027.5, "output_length": 3, "input_length": 11}\n'
)

VIDUR = (
    b",arrived_at,num_prefill_tokens,num_decode_tokens\n0,0.0,512,64\n1,0.75,20,30\n2,1.5,21,31\n"
)

PLAIN_CSV = b"input_tokens,output_tokens,arrival_seconds\n7,8,100\n9,10,100.5\n"

EXAMPLES = {
    "azure-2023": AZURE_2023,
    "azure-2024": AZURE_2024,
    "burstgpt": BURSTGPT,
    "burstgpt-new": BURSTGPT_NEW,
    "mooncake": MOONCAKE,
    "vidur": VIDUR,
    "csv": PLAIN_CSV,
}
