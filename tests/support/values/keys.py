"""Public keys, whose private halves were thrown away."""

ED25519 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINUo32qpFiASNrn2yMRN3Vz+eoxHyl3W0PW9kq8apEek me@host"
ECDSA = (
    "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBPZtNQ4VXzlKwMeyIgYyi3g"
    "Qzj61yCZtE3WT5wHX1Z0sqYFXI++BR7uH6yIlXtvLaN0Tg4aQUnDQUNJP1fmts38= me@host"
)
RSA = (
    "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQCoJHrCiPkyKDFX+vf6H6ZZxsaX0xh78qdeKFWW6NnsbWxKD2UpjBA7acT"
    "2BWL4DxoZ2qN/3KQqznsGgihPAt6SK2d8LcnkqOR29DJP3KKdoPBDF4bfHO6MiPyi4wnaGwsoMPIMZqSxX6l86UWXbdMhPc"
    "/s9zzPmJSEUYYsmhrTaIjt3WDdy5rziROxeCW2VeJIZhuEcn0ddzYs57zbixdGFyoZHlwHay5ro47IgIkQMOvkooNQIq71y"
    "tkYXwlrxD+5mSebJoPisxehucQXsIQFrg8wXgoAzxw7gC6H+eWDXMAqUl5GtMgeoYt6slvE8Xk64/VA705exeZWJ/v9fpZt"
    " me@host"
)
