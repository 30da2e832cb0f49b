"""The operator and trainer images, built without a container registry.

An image is its dependencies (the Dockerfile's stage of that name, built by buildah, kept by a hash of what it is made
from) and one thin layer on top with the project's wheel, made here without a builder: a code change reaches a pod in
seconds. The Dockerfiles' last stage does the same for those who build with docker.
"""
